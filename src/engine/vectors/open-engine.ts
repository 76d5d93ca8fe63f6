import { TrawlError } from '../../base/errors.ts';
import { searchKernel } from '../native/kernel.ts';
import { openReferenceIndex } from '../reference/reference-index.ts';
import { openFlatIndex } from './flat-index.ts';
import type { IndexSource, SearchGpu, VectorIndex } from './vector-index.ts';

/**
 * GPUs that failed in a search of this process, by their number: the driver refuses them until it ends, so a reloaded index could not be
 * opened on them.
 */
const failedGpus = new Map<number, SearchGpu>();

interface EngineOptions {
  /** Search threads; default: the available cores. */
  readonly threads?: number;
  /** Where the first pass over the vectors runs: `cpu`, `cuda` or `cuda:1`. The results are the same. Default: `cpu`. */
  readonly device?: string;
  /** Called if the native engine cannot be used, or a GPU for a part of the index, and when a GPU fails in a search. */
  readonly onWarning?: (warning: string) => void;
  /** Aborting ends the copying to a GPU with CANCELLED. */
  readonly signal?: AbortSignal;
}

/**
 * Opens an index with the fastest available engine. All engines give the same results.
 *
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file; CONFIG_INVALID for an unknown device, DEVICE_UNAVAILABLE for
 * one that cannot be used, also because the index has no codes; CANCELLED.
 */
export async function openEngine(source: IndexSource, options: EngineOptions = {}): Promise<VectorIndex> {
  const { threads, device: named = 'cpu', onWarning = () => undefined, signal } = options;
  const device = parseSearchDevice(named);
  const kernel = searchKernel((reason) => {
    if (device !== undefined) throw withoutGpu(named, `the native engine is missing (${reason})`);
    onWarning(
      `The native engine is missing (${reason}). Searches run in TypeScript, with the same results, but 20 to 1,000 ` +
        'times slower. Install a C++ compiler and run `npm run build` to build the engine.',
    );
  });
  if (kernel === undefined) {
    if (device !== undefined) throw withoutGpu(named, 'TRAWL_ISA=reference selects the engine in TypeScript');
    return openReferenceIndex(source, { threads });
  }
  if (device !== undefined) checkCodes(source, named, onWarning);
  if (threads !== undefined) kernel.setThreads(threads);
  const failed = device === undefined ? undefined : failedGpus.get(device);
  const index = await openFlatIndex(source, kernel, failed);
  if (index.sampledPrefilters > 0) {
    onWarning(
      `${index.sampledPrefilters} of ${source.shards.length} shards have codes of an earlier version, with which their prefilter cannot be ` +
        'compared row by row; `trawl optimize` makes both again.',
    );
  }
  if (device === undefined) return index;
  if (failed !== undefined) {
    onWarning(
      `The GPU ${named} failed in an earlier search, so the CPU searches; restart the server to use the GPU again.`,
    );
    return index;
  }
  const onFailure = (warning: string): void => {
    failedGpus.set(device, { ...index.gpu!, bytes: 0 });
    onWarning(warning);
  };
  try {
    await index.upload(device, onFailure, signal);
    return index;
  } catch (error) {
    await index.close();
    throw error;
  }
}

/**
 * The number of the CUDA device on which vectors are searched, from `cuda` (the first) or `cuda:1`; undefined for `cpu`.
 *
 * @internal Exported for tests.
 * @throws TrawlError CONFIG_INVALID.
 */
export function parseSearchDevice(text: string): number | undefined {
  if (text === 'cpu') return undefined;
  const match = /^cuda(?::(\d{1,3}))?$/.exec(text);
  if (match !== null) return Number(match[1] ?? 0);
  throw new TrawlError(
    'CONFIG_INVALID',
    `search-device is ${JSON.stringify(text)}; expected cpu, cuda, or one CUDA device such as cuda:1.`,
  );
}

/** A GPU searches codes only. */
function checkCodes({ shards }: IndexSource, device: string, onWarning: (warning: string) => void): void {
  const without = shards.flatMap(({ rows, codes }, i) => (rows > 0 && codes === undefined ? [i] : []));
  if (without.length === 0) return;
  if (without.length === shards.filter(({ rows }) => rows > 0).length) {
    throw withoutGpu(device, 'the index has no codes; make them with `trawl optimize`');
  }
  const shardsHave = without.length === 1 ? `Shard ${without[0]} has` : `Shards ${without.join(', ')} have`;
  onWarning(
    `${shardsHave} no codes, so the CPU searches all their rows and ${device} only the other shards; make the codes with ` +
      '`trawl optimize`.',
  );
}

function withoutGpu(device: string, reason: string): TrawlError {
  return new TrawlError('DEVICE_UNAVAILABLE', `Searches cannot run on ${device}: ${reason}. Or search on the CPU.`);
}
