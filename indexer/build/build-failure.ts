import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import { CHANGES_FILE, CHECKPOINT_FILE, PASSAGES_RECORD_FILE } from '../../src/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE } from '../../src/manifest/index-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/manifest/shard-manifest.ts';
import { writeFailure } from '../write-failure.ts';

/** These say that somebody else's work is in the folder: it is left alone. */
const NOT_OURS = new Set(['BUILD_LOCKED', 'BUILD_DIFFERS', 'INDEX_EXISTS']);

interface Failed {
  /** What the build has begun: the folder of an index or of a shard. */
  readonly folder: string;
  readonly final: string;
  readonly keep: () => void;
  readonly discard: () => Promise<void>;
}

/**
 * Ends a build that failed or was stopped, and gives the error to throw. What is embedded is kept, whatever happened;
 * where nothing is, only what the same command would use again: nothing of a corpus that has to be mended first.
 */
export async function failedBuild(error: unknown, { folder, final, keep, discard }: Failed): Promise<unknown> {
  const failure = writeFailure(error, final);
  if (failure instanceof TrawlError && NOT_OURS.has(failure.code)) {
    keep();
    return failure;
  }
  const embedded = holds(folder, [CHECKPOINT_FILE, SHARD_MANIFEST_FILE, INDEX_MANIFEST_FILE]);
  const mend = failure instanceof TrawlError && isFaultOfInputs(failure);
  const kept = embedded || (!mend && holds(folder, [PASSAGES_RECORD_FILE, CHANGES_FILE]));
  if (kept) keep();
  else await discard();
  if (!(failure instanceof TrawlError)) return failure;
  if (failure.code === 'CANCELLED') {
    return new TrawlError(
      'CANCELLED',
      kept
        ? `Stopped. What is done is kept in ${folder}: the same command goes on there.`
        : 'Stopped before anything was done that could be kept: the same command begins anew.',
      { details: { resumable: true, kept }, cause: failure },
    );
  }
  if (!kept || mend) return failure;
  return new TrawlError(failure.code, `${failure.message} What is done is kept: the same command goes on there.`, {
    details: failure.details,
    cause: failure.cause,
  });
}

/** What has to be mended before the same command can do better. A value that is not finite may be the encoder's. */
function isFaultOfInputs({ code, details }: TrawlError): boolean {
  return (
    /^(CORPUS|TEMPLATE|VECTORS|PICKLE)_|^USAGE$/.test(code) ||
    (code === 'NON_FINITE_VECTOR' && details['path'] !== undefined)
  );
}

/** Whether the folder, or a shard in it, has one of the files. */
function holds(folder: string, names: readonly string[]): boolean {
  if (names.some((name) => existsSync(join(folder, name)))) return true;
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .some((entry) => names.some((name) => existsSync(join(folder, entry.name, name))));
  } catch {
    return false;
  }
}
