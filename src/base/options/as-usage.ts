import { TrawlError, usageError } from '../errors.ts';

/** Turns CONFIG_INVALID into USAGE, for work whose settings come from the command line. */
export async function asUsage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'CONFIG_INVALID') {
      throw usageError(error.message, { details: error.details, cause: error });
    }
    throw error;
  }
}
