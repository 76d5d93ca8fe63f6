import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CORPUS_FORMATS } from '../../corpus/corpus-format.ts';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE, parseTemplate } from '../../corpus/passage-template.ts';
import { TSV_ID_TYPES } from '../../corpus/read-tsv.ts';
import { TSV_LAYOUTS } from '../../corpus/tsv-layout.ts';
import { type BuildSummary, buildIndex } from '../../indexer/build-index.ts';
import { currentIndex } from '../../indexer/is-current.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { type Kernel, loadKernel } from '../../src/vector-index/kernel.ts';
import { buildProgress } from '../build-progress.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes, formatCount, formatDuration } from '../format.ts';
import {
  asUsage,
  DEVICE_OPTION,
  folderOfPath,
  modelOverrides,
  OVERRIDE_OPTIONS,
  PRECISION_OPTION,
  SHARE_WEIGHTS_OPTION,
  shareWeights,
} from '../model-options.ts';

export const indexCommand = defineCommand({
  name: 'index',
  summary: 'embed a corpus and write an index directory',
  description:
    'Reads passages (JSONL, TSV, Parquet; gzip, zstd), stores them, embeds them with a model and writes a directory that ' +
    '`trawl serve` and `trawl search` open: a FAISS-compatible vectors.faiss, the passages in SQLite, and manifests that ' +
    'say what it was made with. Directories are read file by file in the byte order of their paths.\n\n' +
    'Everything is written to OUT.partial and takes the place of OUT when it is complete; a build that fails or is stopped ' +
    'leaves OUT as it was.\n\n' +
    'With --json: {"built", "folder", "rows", "dimension", "metric", "generation", "model", "corpus"}, and after a build ' +
    '"tokens", "skippedExamples", "duplicates", "stageMs".',
  positionals: {
    usage: '<corpus...>',
    help: { 'corpus...': 'Files and directories, read in the order given.' },
    min: 1,
    max: 1000,
  },
  options: {
    out: { kind: 'string', value: 'DIR', help: 'The index directory to make. Required.' },
    model: {
      kind: 'string',
      value: 'NAME|DIR',
      default: 'token-average-256',
      help: 'The encoder: a name in models/ or the path of a model folder. The default is the small encoder that comes along; for results take E5 or BGE.',
    },
    overwrite: { kind: 'flag', help: 'Replace the index at OUT; it stays in place until the new one is complete.' },
    'if-changed': {
      kind: 'flag',
      help: 'Do nothing when the index at OUT was made from the same files with the same model and options; otherwise replace it.',
    },
    'passage-template': {
      kind: 'string',
      value: 'TEMPLATE',
      default: DEFAULT_PASSAGE_TEMPLATE,
      help: 'The text to embed, from the columns of a row: \'{title} {text}\'. {contents} is the column contents, or "title", newline, text where there is none.',
    },
    format: { kind: 'choice', choices: CORPUS_FORMATS, help: 'Kind of the files, where their names do not tell.' },
    'tsv-layout': {
      kind: 'choice',
      choices: TSV_LAYOUTS,
      default: 'auto',
      help: 'Order of the columns of TSV files: by header, DPR (id, text, title) or R1-Searcher (id, contents).',
    },
    'tsv-id-type': {
      kind: 'choice',
      choices: TSV_ID_TYPES,
      default: 'auto',
      help: 'Type of the ids of TSV files in replies. auto: integers for R1-Searcher files, strings for others.',
    },
    'skip-bad-lines': {
      kind: 'flag',
      help: 'Leave out lines that cannot be used, and count them, instead of stopping at the first.',
    },
    'unique-ids': {
      kind: 'flag',
      help: 'Stop when two passages have the same id. Without it they are counted and reported.',
    },
    ...OVERRIDE_OPTIONS,
    precision: {
      ...PRECISION_OPTION,
      help: "Which graph of the model: float32, int8 (faster on the CPU, nearly as good), float16 (for CUDA). Default: the model's own; float16 on CUDA.",
    },
    device: DEVICE_OPTION,
    'share-weights': SHARE_WEIGHTS_OPTION,
    workers: {
      kind: 'integer',
      min: 1,
      max: 1024,
      help: 'Encoder threads on the CPU. Default: the cores this process may use.',
    },
  },
  examples: [
    'trawl index corpus/sample/passages.jsonl --out indexes/sample',
    'trawl index wiki-18.jsonl.gz --model models/e5-base-v2 --out indexes/wiki18',
  ],
  async run({ options, positionals, signal, out, note }) {
    const folder = required(options.out);
    const corpusOptions: CorpusOptions = {
      format: options.format,
      tsvLayout: options['tsv-layout'],
      tsvIdType: options['tsv-id-type'],
      skipBadLines: options['skip-bad-lines'],
    };
    parseTemplate(options['passage-template']);
    const encoder = await asUsage(
      openEncoder(options.model, {
        workers: options.workers,
        device: options.device,
        shareWeights: shareWeights(options['share-weights']),
        precision: options.precision,
        overrides: modelOverrides(options),
      }),
    );
    const progress = buildProgress({ silent: options.quiet || options.json });
    try {
      if (options['if-changed'] && existsSync(join(folder, INDEX_MANIFEST_FILE))) {
        const current = await currentIndex(folder, {
          corpus: positionals,
          corpusOptions,
          uniqueIds: options['unique-ids'],
          model: encoder.identity,
          passageTemplate: options['passage-template'],
        });
        if (current !== undefined) {
          if (options.json) out(JSON.stringify({ built: false, folder: resolve(folder), ...jsonFacts(current) }));
          else note(`${folder} is current; nothing to do.`);
          return EXIT.ok;
        }
      }
      const summary = await buildIndex({
        corpus: positionals,
        corpusOptions,
        encoder,
        modelFolder: folderOfPath(options.model),
        kernel: engine(note),
        out: folder,
        overwrite: options.overwrite || options['if-changed'],
        passageTemplate: options['passage-template'],
        uniqueIds: options['unique-ids'],
        onProgress: progress.update,
        signal,
      });
      progress.stop();
      if (options.json) out(JSON.stringify(jsonSummary(summary)));
      else for (const line of textSummary(summary)) note(line);
      return EXIT.ok;
    } finally {
      progress.stop();
      await encoder.close();
    }
  },
});

function required(out: string | undefined): string {
  if (out !== undefined && out !== '') return out;
  throw new TrawlError('USAGE', 'Name the directory to make: --out DIR, for example --out indexes/wiki18.');
}

function jsonSummary({ manifest, ...summary }: BuildSummary): unknown {
  return { built: true, ...summary, ...jsonFacts(manifest) };
}

function jsonFacts({ rows, dimension, metric, generation, model, corpus }: IndexManifest): object {
  return { rows, dimension, metric, generation, model: model.name, corpus };
}

function textSummary(summary: BuildSummary): string[] {
  const { folder, manifest, tokens, skippedExamples, duplicates, passagesWithoutId, stageMs } = summary;
  const { rows, dimension, model, corpus } = manifest;
  const set = model.overrides ?? [];
  const encodeS = stageMs.encode / 1000;
  const lines = [
    `${folder}: ${formatCount(rows)} passages × ${dimension}, ${formatBytes(rows * dimension * 4)} of vectors, model ${model.name}`,
    `  read ${formatDuration(stageMs.read)}, encoded ${formatDuration(stageMs.encode)} ` +
      `(${formatCount(Math.round(rows / encodeS))} passages/s, ${formatCount(Math.round(tokens / encodeS))} tokens/s), ` +
      `finished ${formatDuration(stageMs.finish)}`,
  ];
  if (set.length > 0) lines.push(`  set against the model's own description: ${set.join(', ')}`);
  if (corpus.truncatedPassages > 0) {
    lines.push(
      `  ${formatCount(corpus.truncatedPassages)} passages have more than ${model.maxTokens.passage} tokens: their ends are not in the vectors`,
    );
  }
  if (corpus.skippedLines > 0) {
    lines.push(
      `  ${formatCount(corpus.skippedLines)} bad lines left out:`,
      ...skippedExamples.map((example) => `    ${example}`),
    );
  }
  if (passagesWithoutId > 0) {
    lines.push(`  ${formatCount(passagesWithoutId)} passages have no id: judgements and clients cannot refer to them`);
  }
  if (duplicates.count > 0) {
    lines.push(`  ${formatCount(duplicates.count)} passages have an id that an earlier one has:`);
    for (const { id, lines: at } of duplicates.examples)
      lines.push(`    ${JSON.stringify(id)} on lines ${at.join(', ')}`);
  }
  return lines;
}

/** The engine that makes the codes; without one an index is complete but slow to search. */
function engine(note: (text: string) => void): Kernel | undefined {
  const loaded = loadKernel();
  if (loaded.ok) return loaded.kernel;
  note(
    `The native engine is not there (${loaded.reason}): the index gets no search codes; \`trawl optimize\` makes them later.`,
  );
  return undefined;
}
