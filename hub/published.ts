/** What the vectors of a published index were made with. */
export interface PublishedIndex {
  /** The encoder's id on the hub; its model folder carries pooling and prefixes. */
  readonly model: string;
  readonly dimension: number;
  readonly metric: 'inner-product';
  readonly rows: number;
  /** The text of a passage that was embedded, behind the model's passage prefix. */
  readonly passageTemplate: string;
}

export interface PublishedFile {
  readonly path: string;
  /** Its length, where it is known; the hub says the true one. */
  readonly bytes?: number;
  /** The same to three digits, where the hub's page alone is known. */
  readonly roundedBytes?: number;
}

/** Files of one data set repository. */
export interface PublishedFiles {
  /** `owner/name`. */
  readonly repository: string;
  /** `vectors`: the pieces of one FAISS file, in order. */
  readonly holds: 'corpus' | 'vectors';
  readonly files: readonly PublishedFile[];
}

export interface Published {
  readonly name: string;
  readonly summary: string;
  readonly parts: readonly PublishedFiles[];
  /** Where there are vectors. */
  readonly index?: PublishedIndex;
  /** The file in a zip archive, which has to be unpacked before it can be read. */
  readonly zipHolds?: string;
}

/** Search-R1's corpus: docs/retriever.md and scripts/download.py of PeterGriffinJin/Search-R1. */
const WIKI18_CORPUS: PublishedFiles = {
  repository: 'PeterJinGo/wiki-18-corpus',
  holds: 'corpus',
  files: [{ path: 'wiki-18.jsonl.gz', bytes: 5_123_307_260 }],
};

/**
 * Corpora and indexes that search agents are trained with, by the name that `trawl pull` takes: those whose repository and
 * files their projects name. Not on this hub, so not here: FlashRAG's own E5 index and RAG-R1's passages (ModelScope).
 */
export const PUBLISHED: readonly Published[] = [
  {
    name: 'wiki18',
    summary: "Search-R1's corpus: 21,015,324 passages of 100 words, Wikipedia of December 2018",
    parts: [WIKI18_CORPUS],
  },
  {
    name: 'wiki18-e5',
    summary: 'the same corpus with its E5-base-v2 vectors, a FAISS flat index in two pieces',
    // The pieces add up to the 45 bytes of the header and 21,015,324 × 768 × 4.
    parts: [
      {
        repository: 'PeterJinGo/wiki-18-e5-index',
        holds: 'vectors',
        files: [
          { path: 'part_aa', bytes: 42_949_672_960 },
          { path: 'part_ab', bytes: 21_609_402_413 },
        ],
      },
      WIKI18_CORPUS,
    ],
    index: {
      model: 'intfloat/e5-base-v2',
      dimension: 768,
      metric: 'inner-product',
      rows: 21_015_324,
      passageTemplate: '{contents}',
    },
  },
  {
    name: 'flashrag-wiki18',
    summary: "FlashRAG's wiki-18 in passages of 100 words, a zip archive that has to be unpacked",
    parts: [
      {
        repository: 'RUC-NLPIR/FlashRAG_datasets',
        holds: 'corpus',
        files: [{ path: 'retrieval-corpus/wiki18_100w.zip', bytes: 5_130_719_280 }],
      },
    ],
    zipHolds: 'wiki18_100w.jsonl',
  },
  {
    name: 'asearcher',
    summary: "ASearcher's passages of Wikipedia",
    parts: [
      {
        repository: 'inclusionAI/ASearcher-Local-Knowledge',
        holds: 'corpus',
        files: [{ path: 'wiki_corpus.jsonl', roundedBytes: 23_500_000_000 }],
      },
    ],
  },
];
