import { isNodeError, TrawlError } from '../src/errors.ts';

/** For `.catch`: what an error of writing means. */
export function writingFailed(path: string): (error: unknown) => never {
  return (error) => {
    if (!isNodeError(error)) throw error;
    if (error.code === 'ENOSPC' || error.code === 'EDQUOT') {
      throw new TrawlError(
        'DISK_FULL',
        `There is no space left for ${path}. What has arrived is kept: free space and run the same command again.`,
        { cause: error },
      );
    }
    throw new TrawlError('OUTPUT_NOT_WRITABLE', `${path} cannot be written (${error.code}).`, { cause: error });
  };
}
