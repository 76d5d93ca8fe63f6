import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import type { VerifyReport } from '../../indexer/verify/verify-report.ts';
import { formatBytes, formatNumberOf } from '../../src/base/format.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import { openIndexEncoder } from '../../src/search/opening/open-index-encoder.ts';
import { isMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { checkEndpointOptions, ENDPOINT_OPTIONS } from '../model/endpoint-options.ts';
import { numberFrom } from '../options/numbers.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { type ShownSteps, stepProgress } from '../output/progress/step-progress.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';

const { model, precision, device, 'share-weights': weights, 'encoder-threads': threads } = RETRIEVER_OPTIONS;

export const verifyCommand = defineCommand({
  name: 'verify',
  takesStoreAddress: true,
  summary: 'check every byte of an index',
  description:
    'Checks the sha256 of every file, every page of the passage files with their look-ups and content hash, that all vectors ' +
    'are finite, every bound of codes and prefilters, every posting of inverted indexes, deleted rows and counts. It also ' +
    'embeds a sample of passages again and compares them with their vectors, and analyses them again and compares them with ' +
    'their inverted indexes; if the model is missing, it reports that and checks everything else.\n\n' +
    'Of an address in Milvus or OpenSearch, it checks that what was published is complete and ready, and the checksum of all its rows.\n\n' +
    'The exit code is 3 if a check found a problem. Each line has the file, what was found, what was expected and what to do.\n\n' +
    'With --json: {"folder", "quick", "rows", "shards", "problems": [{"file", "message"}, …], "notChecked", "sample": ' +
    '{"passages", "equal", "largestDistance"} or null, "analysed": passages analysed again, or null}.',
  positionals: {
    usage: '<index>',
    help: { index: 'The index directory, or its address in Milvus (milvus://…) or OpenSearch (opensearch://…).' },
    min: 1,
    max: 1,
  },
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
    if (isPublishedAddress(positionals[0]!)) {
      return await verifyInStore(positionals[0]!, progress, {
        quick: options.quick,
        json: options.json,
        signal,
        out,
        note,
      });
    }
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

/** What was published. Its passages are not embedded again; that is checked in the folder. */
async function verifyInStore(
  place: string,
  progress: ShownSteps,
  {
    quick,
    json,
    signal,
    out,
    note,
  }: Pick<CommandContext<OptionTable>, 'signal' | 'out' | 'note'> & { quick: boolean; json: boolean },
): Promise<number> {
  const onProgress = (done: number, rows: number): void =>
    progress.update({ step: 'reading the rows', share: rows === 0 ? 1 : done / rows, facts: '' });
  const verifyCollection = isMilvusAddress(place)
    ? (await import('../../src/stores/publish/verify-collection.ts')).verifyCollection
    : (await import('../../src/stores/publish/verify-opensearch.ts')).verifyOpenSearch;
  try {
    const { address, rows, problems } = await verifyCollection(place, { quick, signal, onProgress });
    progress.stop();
    if (json)
      out(JSON.stringify({ address, quick, rows, problems: problems.map((message) => ({ file: address, message })) }));
    else for (const problem of problems) out(problem);
    if (problems.length > 0) return EXIT.problems;
    if (!json) {
      out(quick ? `${address}: complete and ready; rows were not read (--quick)` : `${address}: intact`);
      note(formatNumberOf(rows, 'row'));
    }
    return EXIT.ok;
  } finally {
    progress.stop();
  }
}

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
