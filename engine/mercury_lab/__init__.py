"""Training and evaluation of the models: what users do not get. It imports the product, never the other way round."""
