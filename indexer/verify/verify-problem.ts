import { TrawlError } from '../../src/base/errors.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';

export interface VerifyProblem {
  /** Absolute path of the damaged file. */
  readonly file: string;
  /** File, finding, expectation and remedy. */
  readonly message: string;
}

const COPY_AGAIN = 'Copy the file again from an intact copy, or build the index again.';

export function problem(file: string, found: string, remedy: string = COPY_AGAIN): VerifyProblem {
  return { file, message: `${file}: ${found}. ${remedy}` };
}

/** Turns an error about a file into a problem; `file` is the default if the message names no file. Rethrows other errors. */
export function problemOf(error: unknown, file: string): VerifyProblem {
  if (!(error instanceof TrawlError) || error.code === 'CANCELLED' || error.code === 'INTERNAL') throw error;
  const named = /^(\/[^:]+): /.exec(error.message)?.[1];
  const found = named === undefined ? `${file}: ${error.message}` : error.message;
  // Errors of opening an index may name no remedy.
  const hasRemedy = /\b(again|[Rr]estore|Use the program)\b/.test(found);
  return { file: named ?? file, message: hasRemedy ? found : `${found} ${COPY_AGAIN}` };
}

/** Compares the checksum of a file, or of a part of it that was adopted, with its record. */
export async function checksumProblems(
  path: string,
  sha256: string,
  { signal, onBytes, part }: ChecksumOptions = {},
): Promise<VerifyProblem[]> {
  const found = await sha256OfFile(path, signal, onBytes, part);
  if (found === sha256) return [];
  if (part === undefined) return [problem(path, `sha256 is ${found}, the manifest says ${sha256}`)];
  const bytes = `bytes ${part.offset} to ${part.offset + part.bytes}`;
  return [problem(path, `sha256 of ${bytes} is ${found}; it was ${sha256} when the file was adopted`)];
}

interface ChecksumOptions {
  readonly signal?: AbortSignal;
  readonly onBytes?: (bytes: number) => void;
  readonly part?: { readonly offset: number; readonly bytes: number };
}
