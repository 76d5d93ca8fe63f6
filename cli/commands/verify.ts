import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import type { VerifyReport } from '../../indexer/verify/verify-report.ts';
import { openIndexEncoder } from '../../src/retrieval/open-index-encoder.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes, formatNumberOf } from '../format.ts';
import { checkEndpointOptions, ENDPOINT_OPTIONS } from '../model/endpoint-options.ts';
import { numberFrom } from '../number-from.ts';
import { stepProgress } from '../progress/step-progress.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';

const { model, precision, device, 'share-weights': weights, 'encoder-threads': threads } = RETRIEVER_OPTIONS;

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'check every byte of an index',
  description:
    'Checks the sha256 of every file, every page of the passage files with their look-ups and content hash, that all vectors ' +
    'are finite, every bound of codes and prefilters, every posting of inverted indexes, deleted rows and counts. It also ' +
    'embeds a sample of passages again and compares them with their vectors, and analyses them again and compares them with ' +
    'their inverted indexes; if the model is missing, it reports that and checks everything else.\n\n' +
    'The exit code is 3 if a check found a problem. Each line has the file, what was found, what was expected and what to do.\n\n' +
    'With --json: {"folder", "quick", "rows", "shards", "problems": [{"file", "message"}, …], "notChecked", "sample": ' +
    '{"passages", "equal", "largestDistance"} or null, "analysed": passages analysed again, or null}.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {
    quick: {
      type: 'flag',
      help: 'Check only manifests, sizes, headers and deleted rows. Takes seconds at any size, but does not detect a changed byte within a file.',
    },
    sample: {
      type: 'integer',
      min: 0,
      max: 1_000_000,
      default: 32,
      help: 'Number of passages to embed again and compare with their vectors, and to analyse again and compare with their inverted indexes.',
    },
    'sample-distance': {
      type: 'string',
      value: 'NUMBER',
      help: 'Largest accepted distance of a vector of the sample to the stored one, as a fraction of its length. Default: 0.05, for int8 models 0.3. Servers on other GPUs or with quantised weights may need more.',
    },
    'require-model': {
      type: 'flag',
      help: 'Fail if the model is missing, instead of skipping the comparison.',
    },
    model,
    precision,
    device,
    'share-weights': weights,
    'encoder-threads': threads,
    ...ENDPOINT_OPTIONS,
  },
  examples: [
    'trawl verify indexes/sample',
    'trawl verify indexes/wiki18 --quick',
    'trawl verify indexes/wiki18 --sample 1000',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    checkEndpointOptions(options.model, given);
    const distance = options['sample-distance'];
    const progress = stepProgress({ silent: options.quiet || options.json });
    try {
      const encoderOptions = retrieverOptions({ ...options, 'search-threads': undefined });
      const report = await verifyIndex(positionals[0]!, {
        quick: options.quick,
        sample: options.sample,
        largestDistance: distance === undefined ? undefined : numberFrom('sample-distance', distance, { max: 2 }),
        requireEncoder: options['require-model'],
        openEncoder: (folder, manifest) =>
          openIndexEncoder(folder, manifest, { ...encoderOptions, signal, onWarning: note }),
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
  { problems, notChecked, rows, shards, sample, analysed }: VerifyReport,
  quick: boolean,
  { out, note }: { out: (text: string) => void; note: (text: string) => void },
): void {
  for (const { message } of problems) out(message);
  for (const sentence of notChecked) note(sentence);
  if (sample !== null && sample.largestDistance !== null) {
    const distance =
      sample.equal === sample.passages
        ? ''
        : `; the others differ by at most ${sample.largestDistance.toExponential(1)} of their length`;
    note(
      `${formatNumberOf(sample.passages, 'passage')} embedded again: ${sample.equal} equal to the last bit${distance}`,
    );
  }
  if (analysed !== null) note(`${formatNumberOf(analysed, 'passage')} analysed again`);
  if (problems.length > 0) return;
  if (quick) out(`${folder}: manifests, sizes and headers are intact; contents were not checked (--quick)`);
  else out(`${folder}: intact`);
  note(`${formatNumberOf(rows, 'row')} in ${formatNumberOf(shards, 'shard')}`);
}
