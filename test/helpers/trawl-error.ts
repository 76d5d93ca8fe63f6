import { type ErrorCode, TrawlError } from '../../src/errors.ts';

/** For `assert.throws` and `assert.rejects`: a TrawlError with this code whose message matches. */
export function trawlError(code: ErrorCode, message?: RegExp): (error: unknown) => boolean {
  return (error) => {
    if (!(error instanceof TrawlError)) throw new Error(`not a TrawlError: ${String(error)}`, { cause: error });
    if (error.code !== code) throw new Error(`${error.code} where ${code} was expected: ${error.message}`);
    if (message !== undefined && !message.test(error.message)) {
      throw new Error(`the message does not match ${message}: ${error.message}`);
    }
    return true;
  };
}
