"""How does text become findable, and a finding an answer?"""
