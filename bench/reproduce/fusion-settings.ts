import { EvaluatedSystems } from './evaluated-systems.ts';
import { BUNDLED, type Measurement } from './measurement.ts';

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

/** Recall of dense, BM25 and hybrid search with several settings, with all-MiniLM-L6-v2 and with the bundled encoder. */
export async function compareFusions(run: Measurement): Promise<unknown> {
  const systems = new EvaluatedSystems(run);
  const encoders = { MiniLM: await run.miniLm(), bundled: BUNDLED };
  for (const { name, folder } of SETS) {
    for (const [encoder, model] of Object.entries(encoders)) {
      const index = await systems.indexed(`${name}-${encoder}`, run.data(folder, 'corpus.jsonl'), model, 'float32');
      const places = RANKINGS.map((ranking) => `${ranking.name}=${index}?${ranking.options}`);
      await systems.measure(`${name}, ${encoder}`, run.data(folder, 'queries.jsonl'), places);
    }
  }
  return systems.result();
}
