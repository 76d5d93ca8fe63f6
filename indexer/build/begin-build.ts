import { statSync } from 'node:fs';
import { basename, relative, resolve } from 'node:path';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import type { Corpus } from '../../corpus/open-corpus.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { type CorpusScan, scanCorpus } from '../../corpus/scan-corpus.ts';
import { adoptShard } from '../vectors/adopt-shard.ts';
import type { BuildOptions } from './build-options.ts';
import { readingRecord } from './build-settings.ts';
import {
  type BuiltShard,
  buildShard,
  DEFAULT_CHECKPOINT_MS,
  type ShardContext,
  type ShardProgress,
} from './build-shard.ts';
import { shardRows, vectorsInput } from '../vectors/given-vectors.ts';
import { StageClock } from '../stage-clock.ts';
import { type ShardPlace, storedPassages, storePassages } from './store-passages.ts';

interface EncodePlan {
  readonly scan: CorpusScan | undefined;
  readonly corpus: Corpus;
  readonly rows: number;
  readonly rowsDone: number;
  readonly shards: number;
  /** The places are no cut of the corpus: shards that merge cannot join. */
  readonly isPart?: boolean;
  /** Others make the other shards: it has to be told whether all took the same vectors. */
  readonly isJob?: boolean;
  /** Row number of the first row of each place, by the place's index. Of use where vectors are given. */
  readonly firstRows: ReadonlyMap<number, number>;
}

/** What a build of the whole and of a shard do alike. The template is looked at first: it costs nothing. */
export function beginBuild(options: BuildOptions) {
  const { corpusOptions, encoder, kernel, passageTemplate, onProgress, signal, vectors } = options;
  const stage = vectors === undefined ? 'encode' : 'vectors';
  const template = parseTemplate(passageTemplate);
  const files = listCorpusFiles(options.corpus, corpusOptions.format);
  const times = new StageClock();
  return {
    times,
    async scan(): Promise<CorpusScan | undefined> {
      times.start('scan');
      // A pipe is there once.
      if (files.some(({ path }) => !statSync(path).isFile())) return undefined;
      const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      onProgress({ stage: 'scan', passages: 0, readShare: 0 });
      return scanCorpus(files, {
        signal,
        onBytes: (bytes) => onProgress({ stage: 'scan', passages: 0, readShare: Math.min(1, bytes / total) }),
      });
    },
    read(
      places: readonly ShardPlace[],
      scan: CorpusScan | undefined,
      only?: { has(position: number): boolean },
    ): Promise<Corpus> {
      times.start('read');
      onProgress({ stage: 'read', passages: 0, readShare: 0 });
      return storePassages(places, template, { corpus: options.corpus, corpusOptions, scan, only, onProgress, signal });
    },
    async encode(places: readonly ShardPlace[], plan: EncodePlan): Promise<BuiltShard[]> {
      times.start(stage);
      const { scan, corpus, rows: totalPassages, shards } = plan;
      const context: ShardContext = {
        encoder,
        metric: options.metric ?? encoder.identity.similarity,
        kernel,
        template,
        passageTemplate,
        corpusFiles: scan === undefined ? readFiles(corpus) : filesOf(scan),
        checkpointMs: options.checkpointMs ?? DEFAULT_CHECKPOINT_MS,
        onNote: options.onNote ?? (() => undefined),
        signal,
      };
      const built: BuiltShard[] = [];
      const location = modelLocation(options);
      const given = plan.isJob === true && vectors !== undefined ? vectorsInput(vectors) : undefined;
      let before = plan.rowsDone;
      let tokens = 0;
      for (const { folder, index, first, end } of places) {
        const input =
          scan === undefined || plan.isPart === true
            ? undefined
            : {
                first,
                end,
                positions: scan.positions,
                shards,
                reading: readingRecord(corpusOptions),
                ...(given === undefined ? {} : { vectors: given }),
                ...(location === undefined ? {} : { modelLocation: location }),
              };
        let tokensBefore: number | undefined;
        const onShardProgress = (progress: ShardProgress): void => {
          times.start(progress.finishing ? 'finish' : stage);
          tokensBefore ??= progress.tokens;
          onProgress({
            stage,
            passages: before + progress.rows,
            totalPassages,
            ...(vectors === undefined ? { tokens: tokens + progress.tokens - tokensBefore } : {}),
            shard: index,
            shards,
          });
        };
        const rows = vectors && shardRows(vectors, plan.firstRows.get(index)!, storedPassages(folder)!.rows);
        const source = vectors && { vectors, rows: rows! };
        const shard =
          source?.vectors.use === 'adopt'
            ? await adoptShard(folder, input, context, source, onShardProgress)
            : await buildShard(folder, input, context, onShardProgress, source);
        before += shard.manifest.rows;
        tokens += shard.tokens;
        built.push(shard);
      }
      return built;
    },
  };
}

/** From the folder of the index. */
export function modelLocation({ modelFolder, out }: BuildOptions): string | undefined {
  return modelFolder === undefined ? undefined : relative(resolve(out), resolve(modelFolder));
}

export function filesOf(scan: CorpusScan): ShardContext['corpusFiles'] {
  return scan.files.map(({ path, sizeBytes, sha256 }) => ({ name: basename(path), bytes: sizeBytes, sha256 }));
}

function readFiles(corpus: Corpus): ShardContext['corpusFiles'] {
  return corpus.report.files.map(({ path, readBytes, sha256 }) => ({
    name: basename(path),
    bytes: readBytes,
    sha256: sha256!,
  }));
}
