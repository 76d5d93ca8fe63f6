/** Names of the files that a builder makes within a shard. */
export const VECTORS_FILE = 'vectors.faiss';
export const CODES_FILE = 'codes.i8';
export const SCREEN_FILE = 'screen.i8';
export const PASSAGES_FILE = 'passages.sqlite';
