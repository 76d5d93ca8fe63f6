import { closeSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../errors.ts';

/** What a file is, for the message of a reader that cannot use it, and what to do. */
interface ForeignFile {
  /** Such as `a Parquet file`. */
  readonly what: string;
  /** A sentence. */
  readonly remedy: string;
}

/** Bytes of a file's beginning that `foreignFile` needs. */
export const HEAD_BYTES = 512;

const UNPACK = 'Unpack it first.';
const CONVERT = 'Convert it to JSONL, or name another file.';

/** The beginning of a file as latin1, what the file is, and what to do with it. More special ones come first. */
const KINDS: readonly (readonly [begin: RegExp, what: string, remedy: string])[] = [
  [
    /^version https:\/\/git-lfs\.github\.com\/spec/,
    'a pointer of Git LFS, not the file itself',
    'Fetch the file: git lfs pull, in that folder (after git lfs install).',
  ],
  [
    /^\s*<(!doctype html|html)/i,
    'an HTML page, probably an error message that was downloaded',
    'Download the file again, and look at the page.',
  ],
  [
    /^PAR1(?![\t -~])/,
    'a Parquet file',
    'Give it a name that ends in .parquet where Parquet is read, or convert it to JSONL.',
  ],
  [/^\x93NUMPY/, 'a .npy array of numpy', 'Use it as vectors (trawl import).'],
  [/^PK\x03\x04.{26,60}\.npy/s, 'an .npz archive of numpy arrays', 'Use it as vectors (trawl import).'],
  [
    /^PK\x03\x04.{26,120}data\.pkl/s,
    'a checkpoint that torch.save wrote',
    "Save its tensor as .npy: np.save('vectors.npy', torch.load(path, map_location='cpu').float().numpy()).",
  ],
  [
    /^PK\x03\x04.{26}(\[Content_Types\]\.xml|mimetypeapplication)/s,
    'a document of an office program, or an e-book',
    'Export its text or its table as JSONL or TSV.',
  ],
  [/^PK\x03\x04/, 'a zip archive', UNPACK],
  [/^\x1f\x8b\x08/, 'compressed with gzip', UNPACK],
  [/^\x28\xb5\x2f\xfd/, 'compressed with zstd', UNPACK],
  [/^BZh[1-9]1AY&SY/, 'compressed with bzip2', UNPACK],
  [/^\xfd7zXZ\0/, 'compressed with xz', UNPACK],
  [/^7z\xbc\xaf\x27\x1c/, 'a 7z archive', UNPACK],
  [/^.{257}ustar/s, 'a tar archive', UNPACK],
  [
    /^\x89HDF\r\n\x1a\n/,
    'an HDF5 file',
    "Save its matrix as .npy: np.save('vectors.npy', h5py.File(path)['NAME'][:]).",
  ],
  [/^SQLite format 3\0/, 'an SQLite database', CONVERT],
  [
    /^(ARROW1|FEA1)/,
    'an Arrow or Feather file',
    "Write it as Parquet: pyarrow.parquet.write_table(pyarrow.feather.read_table(path), 'file.parquet').",
  ],
  [
    /^\xff\xff\xff\xff.{2}[\0-\x0f]\0/s,
    "an Arrow stream, as in the cache of Hugging Face's datasets",
    "Write it as Parquet: datasets.Dataset.from_file(path).to_parquet('file.parquet').",
  ],
  [
    /^.{4}.\0\0\0\{\s*"/s,
    'a safetensors file',
    'Use it as vectors (trawl import), or as a checkpoint in its folder (trawl model add).',
  ],
  [
    /^GGUF[\x01-\x09]\0\0\0/,
    'a GGUF model of llama.cpp',
    'Serve it with llama.cpp, and pass the address of that server as --model.',
  ],
  [/^I[xwHBNvcLP][A-Za-z0-9]{2}.{2}\0\0/s, 'a FAISS index', 'Use it as vectors (trawl import).'],
  [
    /^\x80[\x02-\x05][\x95\]}(cCXK\x8c]/,
    'a pickle of Python',
    'Use it as vectors (trawl import), or write its texts as JSONL.',
  ],
  [/^%PDF-/, 'a PDF document', 'Extract its text, and write it as JSONL.'],
];

/** Recognises a file that is not what a reader expects by its first bytes; undefined if they say nothing. */
export function foreignFile(head: Uint8Array): ForeignFile | undefined {
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, HEAD_BYTES)).toString('latin1');
  const found = KINDS.find(([begin]) => begin.test(text));
  return found && { what: found[1], remedy: found[2] };
}

/** The first bytes of a regular file, for `foreignFile`. */
export function headOf(path: string): Uint8Array {
  const head = Buffer.alloc(HEAD_BYTES);
  const file = openSync(path, 'r');
  try {
    return head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(file);
  }
}

/** @throws TrawlError CORPUS_FORMAT_UNKNOWN if a file that should be text begins like another one. */
export function checkIsText(path: string, head: Uint8Array): void {
  const foreign = foreignFile(head);
  if (foreign === undefined) return;
  throw new TrawlError('CORPUS_FORMAT_UNKNOWN', `${path} is ${foreign.what}; expected text. ${foreign.remedy}`, {
    details: { path },
  });
}
