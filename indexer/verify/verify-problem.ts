import { TrawlError } from '../../src/errors.ts';

/** One thing that is wrong with an index. */
export interface VerifyProblem {
  /** Absolute path of the file that is wrong. */
  readonly file: string;
  /** A sentence that begins with the file: what was found, what was expected, the way out. */
  readonly message: string;
}

const COPY_AGAIN = 'Copy the file again from where it is whole, or build the index again.';

export function problem(file: string, found: string, wayOut: string = COPY_AGAIN): VerifyProblem {
  return { file, message: `${file}: ${found}. ${wayOut}` };
}

/** The refusal of a part of an index as a problem; `file` where the message names none. Any other error is thrown. */
export function problemOf(error: unknown, file: string): VerifyProblem {
  if (!(error instanceof TrawlError) || error.code === 'CANCELLED' || error.code === 'INTERNAL') throw error;
  const named = /^(\/[^:]+): /.exec(error.message)?.[1];
  const found = named === undefined ? `${file}: ${error.message}` : error.message;
  // What is refused while it is opened may have several ways out, and then names none.
  const hasWayOut = /\b(again|[Rr]estore|Use the program)\b/.test(found);
  return { file: named ?? file, message: hasWayOut ? found : `${found} ${COPY_AGAIN}` };
}
