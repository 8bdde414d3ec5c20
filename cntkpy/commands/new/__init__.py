"""`cntkpy new`: packages of people's own, made of templates."""
