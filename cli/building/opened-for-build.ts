import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import { asUsage } from '../../src/base/options/as-usage.ts';

/**
 * Waits for the encoder of a build. After SIGTERM a scheduler is to start the build again, also if the encoder was not open yet.
 *
 * @throws TrawlError as `asUsage`; CANCELLED with `resumable`.
 */
export async function openedForBuild<T>(opening: Promise<T>): Promise<T> {
  return asUsage(opening).catch((error: unknown) => {
    if (asTrawlError(error).code !== 'CANCELLED') throw error;
    throw new TrawlError('CANCELLED', 'Stopped before the encoder was open. Run the same command again.', {
      details: { resumable: true },
      cause: error,
    });
  });
}
