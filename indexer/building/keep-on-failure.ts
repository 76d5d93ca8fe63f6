import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { CHANGES_FILE, CHECKPOINT_FILE, PASSAGES_RECORD_FILE } from '../../src/index/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/index/manifest/shard-manifest.ts';

/** The folder that a build, a job or an update writes to. This process has locked it. */
export interface WorkFolder {
  readonly folder: string;
  readonly final: string;
  /** Unlocks the folder and keeps its files. */
  release(): void;
  discard(): Promise<void>;
}

/** Errors after which the folder must not be touched, because it belongs to another command. */
const NOT_OURS = new Set(['BUILD_LOCKED', 'BUILD_DIFFERS', 'INDEX_EXISTS']);

/**
 * Runs the steps of a build. If they fail or are cancelled, keeps the folder if the same command can resume from it, else
 * removes it. The error message says whether it was kept.
 */
export async function keepOnFailure<T>(work: WorkFolder, steps: () => Promise<T>): Promise<T> {
  try {
    return await steps();
  } catch (error) {
    throw await endFailed(work, writeFailure(error, work.final));
  }
}

async function endFailed(work: WorkFolder, failure: unknown): Promise<unknown> {
  const { folder } = work;
  if (failure instanceof TrawlError && NOT_OURS.has(failure.code)) {
    work.release();
    return failure;
  }
  const hasCostlyWork = hasAny(folder, [CHECKPOINT_FILE, SHARD_MANIFEST_FILE, INDEX_MANIFEST_FILE]);
  const isInputWrong = failure instanceof TrawlError && isInputError(failure);
  const isKept = hasCostlyWork || (!isInputWrong && hasAny(folder, [PASSAGES_RECORD_FILE, CHANGES_FILE]));
  if (isKept) work.release();
  else await work.discard();
  if (!(failure instanceof TrawlError)) return failure;
  if (failure.code === 'CANCELLED') {
    return new TrawlError(
      'CANCELLED',
      isKept
        ? `Stopped. ${folder} keeps the finished part: run the same command again to resume.`
        : 'Stopped. Nothing was kept: the same command starts from the beginning.',
      { details: { resumable: true, kept: isKept }, cause: failure },
    );
  }
  if (!isKept || isInputWrong) return failure;
  return new TrawlError(
    failure.code,
    `${failure.message} The finished part is kept: run the same command again to resume.`,
    { details: failure.details, cause: failure.cause },
  );
}

/** Whether the inputs must change before the command can succeed. A non-finite value without a path comes from the encoder. */
function isInputError({ code, details }: TrawlError): boolean {
  return (
    /^(CORPUS|TEMPLATE|VECTORS|PICKLE)_|^USAGE$/.test(code) ||
    (code === 'NON_FINITE_VECTOR' && details.path !== undefined)
  );
}

/** Whether the folder, or a subfolder, has one of the files. */
function hasAny(folder: string, names: readonly string[]): boolean {
  if (names.some((name) => existsSync(join(folder, name)))) return true;
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .some((entry) => names.some((name) => existsSync(join(folder, entry.name, name))));
  } catch {
    return false;
  }
}
