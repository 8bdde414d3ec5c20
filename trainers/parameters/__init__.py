"""The parameters of training, declared once."""
