"""Pictures: map files, containers, decoding, transforms, and the readers made of them. Imports OpenCV only on use."""
