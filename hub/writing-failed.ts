import { isNodeError, TrawlError } from '../src/errors.ts';

/** For `.catch`: turns an error of writing `path` into DISK_FULL or OUTPUT_NOT_WRITABLE. */
export function writingFailed(path: string): (error: unknown) => never {
  return (error) => {
    if (!isNodeError(error)) throw error;
    if (error.code === 'ENOSPC' || error.code === 'EDQUOT') {
      throw new TrawlError(
        'DISK_FULL',
        `No space left for ${path}. The received data is kept: free space and run the same command again.`,
        { cause: error },
      );
    }
    throw new TrawlError('OUTPUT_NOT_WRITABLE', `Cannot write ${path} (${error.code}).`, { cause: error });
  };
}
