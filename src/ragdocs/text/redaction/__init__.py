"""What is a secret, and how is it kept out of a text?"""
