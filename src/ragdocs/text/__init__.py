"""What is in a text?"""
