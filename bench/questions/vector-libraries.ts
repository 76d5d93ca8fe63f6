import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { APPROXIMATE_BASELINES, type ApproximateEngine, exactEngine } from '../approximate/approximate-engine.ts';
import { type BaselinesOptions, openBaselines } from '../approximate/open-baselines.ts';
import { openTrawlEngine } from '../flat/trawl-engine.ts';
import { encodeNpy } from '../vectors/npy.ts';
import { questionVectors } from '../vectors/question-vectors.ts';
import { openVectorFile } from '../vectors/vector-file.ts';
import type { QuestionEngine } from './question-engine.ts';

export interface VectorLibrariesOptions extends Omit<BaselinesOptions, 'against'> {
  /** An index with vectors; the libraries read its file. */
  readonly index: string;
  /** The encoder of the index. */
  readonly model: string | undefined;
  readonly scratch: string;
}

/**
 * Vector libraries over the vectors of an index: Trawl's own engine and FAISS Flat, which are exact, and graphs of FAISS and usearch, an
 * engine for each setting. They get the questions as vectors, so a time has no encoder in it.
 */
export async function vectorLibraries(
  options: VectorLibrariesOptions,
  questions: readonly string[],
  { k, idOfRow }: { readonly k: number; readonly idOfRow: readonly string[] },
  skip: (engine: string, reason: string) => void,
): Promise<QuestionEngine[]> {
  const { index, model, threads, cache, scratch, signal, note } = options;
  const shards = openIndexDirectory(index).source?.shards ?? [];
  const [segment] = shards[0]?.segments ?? [];
  if (model === undefined || segment === undefined || shards.length > 1 || shards[0]!.segments.length > 1) {
    const reason = model === undefined ? 'the encoder of the index is unknown' : `${index} has several vector files`;
    for (const name of ['trawl', ...APPROXIMATE_BASELINES]) skip(`${name} (library)`, reason);
    return [];
  }
  const queries = await questionVectors(questions, { model, threads });
  const queriesFile = join(scratch, 'question-vectors.npy');
  await writeFile(queriesFile, encodeNpy(queries));
  const loaded = loadKernel();
  const context = { folder: join(cache, 'bench'), kernel: loaded.ok ? loaded.kernel : undefined, signal, note };
  const file = openVectorFile(segment.path);
  const own = await openTrawlEngine(file, queries, { threads, withPrefilter: true }, context);
  try {
    const files = { vectors: segment.path, queries: queriesFile, rows: file.rows, dimension: file.dimension };
    const baselines = await openBaselines({ ...options, against: APPROXIMATE_BASELINES }, files, skip);
    return [exactEngine(own), ...baselines].flatMap((engine) =>
      engine.efforts.map((effort) => vectorLibrary(engine, { effort, k, idOfRow })),
    );
  } catch (error) {
    await own.close();
    throw error;
  }
}

/** One setting of a library that has the vectors of the questions already. */
function vectorLibrary(
  engine: ApproximateEngine,
  { effort, k, idOfRow }: { readonly effort: number | null; readonly k: number; readonly idOfRow: readonly string[] },
): QuestionEngine {
  return {
    name: engine.name,
    version: engine.version,
    mode: 'dense',
    effort,
    over: 'library',
    async ask(questions) {
      const { ms, rows } = await engine.lone(questions.length, k, effort);
      const ids = questions.map((_, i) => rows.slice(i * k, (i + 1) * k).map((row) => idOfRow[row]!));
      return { ms, ids };
    },
    residentBytes: () => engine.residentBytes(),
    close: () => engine.close(),
  };
}
