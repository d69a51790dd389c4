"""How text becomes findable, and a finding an answer."""
