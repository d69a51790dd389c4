"""How does a project begin?"""
