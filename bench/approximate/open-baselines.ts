import { throwIfCancelled } from '../../src/base/abort.ts';
import { availableMemory } from '../../src/base/system/memory.ts';
import { baselinePython } from '../baselines.ts';
import { formatGigabytes } from '../report-format.ts';
import { EngineUnavailable } from '../script-process.ts';
import { type ApproximateBaseline, type ApproximateEngine, openApproximate } from './approximate-engine.ts';

/** A graph of float32 vectors takes this many times their bytes while it is made. */
const GRAPH_MEMORY = 2.5;

export interface BaselinesOptions {
  readonly against: readonly ApproximateBaseline[];
  /** Settings of the graphs (efSearch). */
  readonly efforts: readonly number[];
  readonly threads: number;
  readonly cache: string;
  readonly python: string | undefined;
  readonly signal: AbortSignal;
  note(text: string): void;
}

interface BaselineFiles {
  /** A FAISS file. */
  readonly vectors: string;
  /** A .npy file. */
  readonly queries: string;
  readonly rows: number;
  readonly dimension: number;
}

/** Opens the baselines that are installed and fit into memory, and calls `skip` for the others. After an error none stays open. */
export async function openBaselines(
  { against, python, cache, threads, efforts, signal, note }: BaselinesOptions,
  { vectors, queries, rows, dimension }: BaselineFiles,
  skip: (engine: string, reason: string) => void,
): Promise<ApproximateEngine[]> {
  const interpreter = python ?? baselinePython(cache, 'flat');
  const opened: ApproximateEngine[] = [];
  try {
    for (const name of against) {
      throwIfCancelled(signal);
      const needed = rows * dimension * 4 * (name === 'faiss' ? 1 : GRAPH_MEMORY);
      const free = availableMemory();
      if (interpreter === undefined) skip(name, 'no Python environment: run trawl bench baselines');
      else if (needed > free) {
        skip(name, `it needs about ${formatGigabytes(needed)} of memory, but only ${formatGigabytes(free)} are free`);
      } else {
        try {
          if (name !== 'faiss') note(`${name}: making its graph`);
          opened.push(await openApproximate(name, { python: interpreter, threads, vectors, queries, efforts }));
        } catch (error) {
          if (!(error instanceof EngineUnavailable)) throw error;
          skip(name, error.message);
        }
      }
    }
    return opened;
  } catch (error) {
    await Promise.all(opened.map((engine) => engine.close()));
    throw error;
  }
}
