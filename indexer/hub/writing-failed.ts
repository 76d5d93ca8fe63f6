import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';

/** For `.catch`: turns an error of writing `path` into DISK_FULL or OUTPUT_NOT_WRITABLE. */
export function writingFailed(path: string): (error: unknown) => never {
  return (error) => {
    const failure = writeFailure(error, path);
    if (failure instanceof TrawlError && failure.code === 'DISK_FULL' && failure !== error) {
      throw new TrawlError(
        'DISK_FULL',
        `${failure.message} The received data is kept: the same command resumes the download.`,
        { details: failure.details, cause: error },
      );
    }
    if (failure !== error || error instanceof TrawlError || !isNodeError(error)) throw failure;
    throw new TrawlError(
      'OUTPUT_NOT_WRITABLE',
      `${path} cannot be written: the system reports ${error.code}. Check the disk, or choose another folder.`,
      { details: { path, reason: error.code }, cause: error },
    );
  };
}
