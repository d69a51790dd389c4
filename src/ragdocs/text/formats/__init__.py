"""What does each format of a text mean?"""
