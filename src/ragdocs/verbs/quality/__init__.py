"""How well are texts found, and is everything in order?"""
