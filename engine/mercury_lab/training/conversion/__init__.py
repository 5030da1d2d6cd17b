"""Convert pretrained weights into a model folder, and a training run into a model folder."""
