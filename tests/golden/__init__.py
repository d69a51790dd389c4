"""Golden files of what users and models see, and the modules that make them."""
