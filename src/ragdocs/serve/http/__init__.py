"""The HTTP rim: who may ask over the network, and every declared verb as an endpoint."""
