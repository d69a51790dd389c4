"""What does the repository know about itself?"""
