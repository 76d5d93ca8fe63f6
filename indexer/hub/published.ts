/** How the vectors of a published index were made. */
interface PublishedIndex {
  /** The encoder's id on the hub; its model folder has pooling and prefixes. */
  readonly model: string;
  readonly dimension: number;
  readonly metric: 'inner-product';
  readonly rows: number;
  /** The embedded text of a passage, without the model's passage prefix. */
  readonly passageTemplate: string;
}

interface PublishedFiles {
  /** `owner/name`. */
  readonly repository: string;
  /** `vectors`: parts of one FAISS file, in order. */
  readonly holds: 'corpus' | 'vectors';
  /** Expected sizes, exact or to three digits as the hub's web page shows them; the hub's own size is authoritative. */
  readonly files: readonly { readonly path: string; readonly bytes?: number; readonly roundedBytes?: number }[];
}

export interface Published {
  readonly name: string;
  readonly summary: string;
  readonly parts: readonly PublishedFiles[];
  /** Set if `parts` has vectors. */
  readonly index?: PublishedIndex;
  /** Name of the corpus in a zip archive that must be unpacked first. */
  readonly zipHolds?: string;
}

/** Search-R1's corpus: docs/retriever.md and scripts/download.py of PeterGriffinJin/Search-R1. */
const WIKI18_CORPUS: PublishedFiles = {
  repository: 'PeterJinGo/wiki-18-corpus',
  holds: 'corpus',
  files: [{ path: 'wiki-18.jsonl.gz', bytes: 5_123_307_260 }],
};

/**
 * Corpora and indexes used to train search agents, by their names for `trawl pull`. Repositories and files come from the
 * projects' documentation. FlashRAG's E5 index and RAG-R1's passages are missing, because they are on ModelScope.
 */
export const PUBLISHED: readonly Published[] = [
  {
    name: 'wiki18',
    summary: "Search-R1's corpus: 21,015,324 passages of 100 words, Wikipedia of December 2018",
    parts: [WIKI18_CORPUS],
  },
  {
    name: 'wiki18-e5',
    summary: 'the same corpus with its E5-base-v2 vectors, a FAISS flat index in two parts',
    // The sizes add up to a header of 45 bytes and 21,015,324 × 768 × 4 bytes.
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
    summary: "FlashRAG's wiki-18 in passages of 100 words, a zip archive that must be unpacked",
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
