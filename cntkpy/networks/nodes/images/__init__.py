"""Operations on images: convolution, pooling, cropping."""
