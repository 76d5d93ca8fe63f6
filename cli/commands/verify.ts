import { examineIndex } from '../../indexer/verify/verify-index.ts';
import type { VerifyReport } from '../../indexer/verify/verify-report.ts';
import { openIndexEncoder } from '../../src/retrieval/open-index-encoder.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes, formatNumberOf } from '../format.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';
import { stepProgress } from '../step-progress.ts';

const { model, precision, device, 'share-weights': weights, 'encoder-threads': threads } = RETRIEVER_OPTIONS;

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'read every byte of an index and compare it with what was written',
  description:
    'Checks the sha256 of every file; every page of the passage files, their look-ups and content hash; that all vectors are ' +
    'finite; every bound of the codes and screens; tombstones and counts; and, on a sample of passages embedded again, that ' +
    'passages and vectors belong together. Where the model is not there, that is said and the rest is checked.\n\n' +
    'Exit code 3 when something is wrong: each line names the file, what was found, what was expected and the way out.\n\n' +
    'With --json: {"folder", "quick", "rows", "shards", "problems": [{"file", "message"}, …], "notChecked", "sample": ' +
    '{"passages", "equal", "largestDistance"} or null}.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {
    quick: {
      kind: 'flag',
      help: 'Manifests with their checksums, sizes, headers and tombstones alone: seconds, whatever the size. It does not see a changed byte within a file.',
    },
    sample: {
      kind: 'integer',
      min: 0,
      max: 1_000_000,
      default: 32,
      help: 'Passages to embed again and compare with their vectors; 0 for none.',
    },
    'require-model': {
      kind: 'flag',
      help: 'Stop at once where the model is not there, rather than leave passages and vectors uncompared.',
    },
    model,
    precision,
    device,
    'share-weights': weights,
    'encoder-threads': threads,
  },
  examples: [
    'trawl verify indexes/sample',
    'trawl verify indexes/wiki18 --quick',
    'trawl verify indexes/wiki18 --sample 1000',
  ],
  async run({ options, positionals, signal, out, note }) {
    const progress = stepProgress({ silent: options.quiet || options.json });
    try {
      const encoderOptions = retrieverOptions({ ...options, 'search-threads': undefined });
      const report = await examineIndex(positionals[0]!, {
        quick: options.quick,
        sample: options.sample,
        requireEncoder: options['require-model'],
        openEncoder: (folder, manifest) => openIndexEncoder(folder, manifest, { ...encoderOptions, onWarning: note }),
        onProgress: ({ step, doneBytes, totalBytes }) =>
          progress.update({
            step,
            share: totalBytes === 0 ? 1 : Math.min(1, doneBytes / totalBytes),
            facts: `${formatBytes(Math.round(doneBytes))} of ${formatBytes(totalBytes)}`,
          }),
        signal,
      });
      progress.stop();
      if (options.json) out(JSON.stringify({ folder: positionals[0]!, quick: options.quick, ...report }));
      else show(positionals[0]!, report, options.quick, { out, note });
      return report.problems.length === 0 ? EXIT.ok : EXIT.problems;
    } finally {
      progress.stop();
    }
  },
});

function show(
  folder: string,
  { problems, notChecked, rows, shards, sample }: VerifyReport,
  quick: boolean,
  { out, note }: { out: (text: string) => void; note: (text: string) => void },
): void {
  for (const { message } of problems) out(message);
  for (const sentence of notChecked) note(sentence);
  if (sample !== null && sample.largestDistance !== null) {
    const distance =
      sample.equal === sample.passages
        ? ''
        : `; the others are at most ${sample.largestDistance.toExponential(1)} of their length away`;
    note(`${sample.passages} passages embedded again: ${sample.equal} with the stored bits${distance}`);
  }
  if (problems.length > 0) return;
  if (quick) out(`${folder}: manifests, sizes and headers are as they were written; the content was not read`);
  else out(`${folder}: everything is as it was written`);
  note(`${formatNumberOf(rows, 'row')} in ${formatNumberOf(shards, 'shard')}`);
}
