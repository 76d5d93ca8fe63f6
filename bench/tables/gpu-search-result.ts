/** Exact search on a GPU beside the CPU and torch, over the same rows. Times of whole searches are medians. */
export interface GpuSearchResult {
  readonly format: 'trawl-gpu-search';
  readonly version: 1;
  readonly date: string;
  readonly trawl: string;
  readonly gpu: string;
  /** Of NVIDIA. */
  readonly driver: string;
  readonly processor: string;
  /** Threads of the searches on the CPU. */
  readonly threads: number;
  readonly torch: string;
  readonly rows: number;
  readonly dimension: number;
  readonly k: number;
  /** Small indexes whose answers were compared bit for bit with those of the CPU. */
  readonly checked: { readonly cases: number; readonly different: number };
  readonly upload: { readonly seconds: number; readonly gpuBytes: number };
  readonly searches: readonly {
    readonly queries: number;
    readonly ms: number;
    readonly fastestMs: number;
    readonly slowestMs: number;
    /** Of the kernels. */
    readonly deviceMs: number;
    readonly hitsPerQuery: number;
    readonly rescoredPerQuery: number;
    readonly cpuMs: number;
    /** Rows and score bits of every query on the GPU and on the CPU. */
    readonly sameBits: boolean;
  }[];
  /** torch on the GPU: a matrix product and `topk`, in parts that fit. */
  readonly baselines: readonly {
    /** `float16`: rows and queries in float16, scores in float32; `float16-coarse`: scores in float16; `float32`; `tf32`. */
    readonly type: string;
    readonly queries: number;
    readonly ms: number;
    /** Of Trawl's rows. */
    readonly recall: number;
  }[];
}
