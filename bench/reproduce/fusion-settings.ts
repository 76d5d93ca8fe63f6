import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BUNDLED, EvaluatedSystems, systemsFile } from './evaluated-systems.ts';
import { requiredInputs } from './required-inputs.ts';

const SETS = [
  { name: 'hotpot', folder: 'hotpot_val500_pooled' },
  { name: 'SQuAD', folder: 'squad_v11_dev' },
];
const OTHER_BM25 = 'k1=1.2&b=0.75';
const FUSIONS = [
  { name: 'weighted', options: '' },
  { name: 'rrf 60, weights 1 and 1', options: '&hybrid-fusion=rrf' },
  { name: 'rrf 60, weights 0.3 and 0.7', options: '&hybrid-fusion=rrf&hybrid-weights=dense=0.3,bm25=0.7' },
];
/** Names as the table has them, and options of `trawl eval`. */
const RANKINGS: readonly { readonly name: string; readonly options: string }[] = [
  { name: '`dense`', options: 'mode=dense' },
  { name: '`bm25` 0.9, 0.4', options: 'mode=bm25' },
  ...FUSIONS.map(({ name, options }) => ({ name: `\`hybrid\`, ${name}`, options: `mode=hybrid${options}` })),
  { name: '`bm25` 1.2, 0.75', options: `mode=bm25&${OTHER_BM25}` },
  ...FUSIONS.map(({ name, options }) => ({
    name: `\`hybrid\` with 1.2, 0.75, ${name}`,
    options: `mode=hybrid&${OTHER_BM25}${options}`,
  })),
];

/**
 * Measures dense, BM25 and hybrid search with several settings, with all-MiniLM-L6-v2 and with the bundled encoder, and writes a
 * SystemsResult.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the model.
 */
export async function compareFusions(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  const { data, checkpoint } = requiredInputs();
  const systems = new EvaluatedSystems({ work: scratch, signal, note: () => {} });
  const encoders = [
    { name: 'MiniLM', model: await systems.imported(checkpoint, ['float32']) },
    { name: 'bundled', model: BUNDLED },
  ];
  for (const { name, folder } of SETS) {
    for (const encoder of encoders) {
      const corpus = join(data, folder, 'corpus.jsonl');
      const index = await systems.indexed(`${name}-${encoder.name}`, corpus, encoder.model, 'float32');
      const places = RANKINGS.map((ranking) => `${ranking.name}=${index}?${ranking.options}`);
      await systems.measure(`${name}, ${encoder.name}`, join(data, folder, 'queries.jsonl'), places);
    }
  }
  await writeFile(file, systemsFile(systems.rows));
}
