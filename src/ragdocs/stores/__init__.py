"""Where does the text live?"""
