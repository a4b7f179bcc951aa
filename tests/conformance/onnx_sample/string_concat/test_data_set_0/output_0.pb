2to be!2or!2
not to be!By0