import { ID_SOURCES } from '../../indexer/prepare/format-rows.ts';
import { RULE_NAMES } from '../../indexer/prepare/open-rule.ts';
import {
  DOCUMENT_FORMATS,
  type PrepareProgress,
  type PrepareSummary,
  preparePassages,
} from '../../indexer/prepare/prepare-passages.ts';
import { formatBytes, formatCount, formatDuration, formatNumberOf } from '../../src/base/format.ts';
import { requiredOption } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { lines } from '../output/lines.ts';
import { type ShowStep, withProgress } from '../output/progress/step-progress.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const prepareCommand = defineCommand({
  name: 'prepare',
  summary: 'split documents into passages',
  description:
    "Splits documents (KILT's knowledge source, WikiExtractor's JSON, or objects with a title and a text or contents; as " +
    'JSON Lines, gzip, zstd) into passages and writes them to one file for `trawl index`. docs/corpora.md describes the ' +
    'rules and the published vectors that belong to them.\n\n' +
    'The file is written to OUT.partial and renamed when it is complete. Its content does not depend on the number of threads.\n\n' +
    'With --json: {"out", "rule", "documents", "passages", "emptyDocuments", "skippedLines", "skippedExamples", ' +
    '"readBytes", "sizeBytes", "writtenBytes", "sha256", "workers", "elapsedMs"}.',
  positionals: {
    usage: '<documents...>',
    help: { 'documents...': 'Files and directories, read in the order given.' },
    max: 1000,
  },
  options: {
    out: option.text('FILE', 'The file to write: .jsonl or .tsv, followed by .gz or .zst to compress it. Required.'),
    rule: option.choice(
      { choices: RULE_NAMES, default: 'words' },
      'How to split: by words, sentences or tokens, or exactly like another project.',
    ),
    size: option.integer(
      { min: 1, max: 1_000_000 },
      'Size of a passage: words (default 100), sentences (6), tokens (180), or words of flashrag-words (512).',
    ),
    overlap: option.integer(
      { min: 0, max: 999_999 },
      'Number of words, sentences or tokens that a passage shares with the passage before it. Default: 0.',
    ),
    model: option.text('NAME|DIR', 'The model whose tokenizer --rule tokens uses.'),
    'id-from': option.choice(
      { choices: ID_SOURCES, default: 'position' },
      'position: the id is the number of the passage in the file. doc: DOCUMENT-N for passage N of a document.',
    ),
    columns: option.flag(
      'Omit the JSONL columns about the source of a passage: doc_id, passage, url, overlap, filled, and section for KILT.',
      { default: true },
    ),
    format: option.choice(DOCUMENT_FORMATS, 'Format of all files. Default: by their names.'),
    'skip-bad-lines': option.flag('Skip and count bad lines instead of stopping at the first.'),
    overwrite: option.flag('Replace the file at OUT. The old file stays in place until the new one is complete.'),
    workers: option.integer({ min: 1, max: 1024 }, 'Threads. Default: the cores available to this process.'),
  },
  examples: [
    'trawl prepare kilt_knowledgesource.json --rule rag-r1 --out wiki_kilt_100_really.tsv',
    'trawl prepare extracted/ --rule sentences --size 6 --overlap 3 --out passages.jsonl.zst',
  ],
  async run({ options, positionals, signal, out, note }) {
    const summary = await withProgress(options, (show) =>
      preparePassages({
        documents: positionals,
        format: options.format,
        out: requiredOption('out', options.out, 'the file to write, such as --out passages.jsonl'),
        overwrite: options.overwrite,
        rule: options.rule,
        size: options.size,
        overlap: options.overlap,
        // TRAWL_MODEL may be set for other commands; the other rules must not use it.
        model: options.rule === 'tokens' ? options.model : undefined,
        idFrom: options['id-from'],
        columns: options.columns,
        skipBadLines: options['skip-bad-lines'],
        workers: options.workers,
        onProgress: progressOf(show),
        signal,
      }),
    );
    if (options.json) out(JSON.stringify(summary));
    else for (const line of textSummary(summary)) note(line);
    return EXIT.ok;
  },
});

function textSummary(summary: PrepareSummary): string[] {
  const { out, documents, passages, emptyDocuments, writtenBytes, elapsedMs, skippedLines, skippedExamples } = summary;
  const rate = formatCount(Math.round((1000 * passages) / elapsedMs));
  return lines(
    `${out}: ${formatNumberOf(passages, 'passage')} from ${formatNumberOf(documents, 'document')}, ${formatBytes(writtenBytes)}`,
    `  ${formatDuration(elapsedMs)}, ${rate} passages/s`,
    emptyDocuments > 0 && `  ${formatNumberOf(emptyDocuments, 'document')} without a passage`,
    skippedLines > 0 && `  ${formatNumberOf(skippedLines, 'bad line')} skipped:`,
    ...(skippedLines > 0 ? skippedExamples.map((line) => `    ${line}`) : []),
  );
}

function progressOf(show: ShowStep): (progress: PrepareProgress) => void {
  const started = performance.now();
  return ({ readBytes, sizeBytes, passages, documents, writtenBytes }) => {
    const rate = formatCount(Math.round((1000 * passages) / Math.max(1, performance.now() - started)));
    show({
      step: 'preparing',
      // The size of a pipe is not known.
      share: sizeBytes > 0 ? Math.min(1, readBytes / sizeBytes) : 0,
      facts: `${formatCount(passages)} passages of ${formatCount(documents)} documents, ${rate} passages/s, ${formatBytes(writtenBytes)} written`,
    });
  };
}
