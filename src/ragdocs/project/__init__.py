"""Where does a project keep things?"""
