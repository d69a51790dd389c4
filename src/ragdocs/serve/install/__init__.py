"""How do the clients on this machine learn of ragdocs?"""
