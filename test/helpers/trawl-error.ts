import { type ErrorCode, TrawlError } from '../../src/base/errors.ts';

/** For `assert.throws` and `assert.rejects`: expects a TrawlError with this code and a matching message. */
export function trawlError(code: ErrorCode, message?: RegExp): (error: unknown) => boolean {
  return (error) => {
    if (!(error instanceof TrawlError)) throw new Error(`not a TrawlError: ${String(error)}`, { cause: error });
    if (error.code !== code) throw new Error(`expected ${code}, got ${error.code}: ${error.message}`);
    if (message !== undefined && !message.test(error.message)) {
      throw new Error(`the message does not match ${message}: ${error.message}`);
    }
    return true;
  };
}
