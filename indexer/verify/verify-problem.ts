import { TrawlError } from '../../src/base/errors.ts';

/** A problem found in an index. */
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
