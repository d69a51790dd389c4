"""What can be asked of the memory lane?"""
