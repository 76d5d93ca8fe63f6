import type { VerifyReport } from '../../indexer/verify/index-verifier.ts';
import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import { formatBytes, formatNumberOf } from '../../src/base/format.ts';
import { openIndexEncoder } from '../../src/search/opening/open-index-encoder.ts';
import { isMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { checkEndpointOptions, ENDPOINT_OPTIONS } from '../model/endpoint-options.ts';
import { numberFrom } from '../options/numbers.ts';
import * as option from '../options/option.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { withProgress } from '../output/progress/step-progress.ts';
import { type AnyContext, defineCommand, EXIT, INDEX_OR_ADDRESS } from '../program/command.ts';

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
  positionals: INDEX_OR_ADDRESS,
  options: {
    quick: option.flag(
      'Check only manifests, sizes, headers and deleted rows. Takes seconds at any size, but does not detect a changed byte within a file.',
    ),
    sample: option.integer(
      { min: 0, max: 1_000_000, default: 32 },
      'Number of passages to embed again and compare with their vectors, and to analyse again and compare with their inverted indexes.',
    ),
    'sample-distance': option.text(
      'NUMBER',
      'Largest accepted distance of a vector of the sample to the stored one, as a fraction of its length. Default: 0.05, for int8 models 0.3. Servers on other GPUs or with quantised weights may need more.',
    ),
    'require-model': option.flag('Fail if the model is missing, instead of skipping the comparison.'),
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
    const [place] = positionals as [string];
    if (isPublishedAddress(place)) return verifyInStore(place, options.quick, { options, signal, out, note });
    const distance = options['sample-distance'];
    const encoderOptions = retrieverOptions({ ...options, 'search-threads': undefined, 'search-device': 'cpu' });
    const report = await withProgress(options, (show) =>
      verifyIndex(place, {
        quick: options.quick,
        sample: options.sample,
        largestDistance: distance === undefined ? undefined : numberFrom('sample-distance', distance, { max: 2 }),
        requireEncoder: options['require-model'],
        openEncoder: (folder, manifest) =>
          openIndexEncoder(folder, manifest, { ...encoderOptions, signal, onWarning: note }),
        onProgress: ({ step, doneBytes, totalBytes }) =>
          show({
            step,
            share: totalBytes === 0 ? 1 : Math.min(1, doneBytes / totalBytes),
            facts: `${formatBytes(Math.round(doneBytes))} of ${formatBytes(totalBytes)}`,
          }),
        signal,
      }),
    );
    if (options.json) out(JSON.stringify({ folder: place, quick: options.quick, ...report }));
    else print(place, report, options.quick, { out, note });
    return report.problems.length === 0 ? EXIT.ok : EXIT.problems;
  },
});

/** What was published. Its passages are not embedded again; that is checked in the folder. */
async function verifyInStore(
  place: string,
  quick: boolean,
  { options, signal, out, note }: Pick<AnyContext, 'options' | 'signal' | 'out' | 'note'>,
): Promise<number> {
  const { verifyCollection, verifyOpenSearch } = await import('../../src/stores/publish/verify-store.ts');
  const verify = isMilvusAddress(place) ? verifyCollection : verifyOpenSearch;
  const { address, rows, problems } = await withProgress(options, (show) => {
    const onProgress = (done: number, all: number): void =>
      show({ step: 'reading the rows', share: all === 0 ? 1 : done / all, facts: '' });
    return verify(place, { quick, signal, onProgress });
  });
  const exitCode = problems.length === 0 ? EXIT.ok : EXIT.problems;
  if (options.json) {
    out(JSON.stringify({ address, quick, rows, problems: problems.map((message) => ({ file: address, message })) }));
    return exitCode;
  }
  for (const problem of problems) out(problem);
  if (exitCode !== EXIT.ok) return exitCode;
  out(quick ? `${address}: complete and ready; rows were not read (--quick)` : `${address}: intact`);
  note(formatNumberOf(rows, 'row'));
  return exitCode;
}

function print(
  folder: string,
  { problems, notChecked, rows, shards, sample, analysed }: VerifyReport,
  quick: boolean,
  { out, note }: Pick<AnyContext, 'out' | 'note'>,
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
