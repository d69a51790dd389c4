"""What do we need of the machine?"""
