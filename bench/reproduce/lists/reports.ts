import { benchAll, type Reproduction } from '../reproduction.ts';

export const REPORTS: readonly Reproduction[] = [
  {
    name: 'bench-small',
    file: 'bench/results/bench-small.json',
    about: 'exact search, graphs, servers and questions at the size small',
    time: '5 to 10 minutes',
    ...benchAll('small'),
  },
  {
    name: 'bench-medium',
    file: 'bench/results/bench-medium.json',
    about: 'the same over a million vectors and the corpora beside the checkout',
    time: '29 minutes',
    ...benchAll('medium'),
  },
  {
    name: 'bench-medium-avx2',
    file: 'bench/results/bench-medium-avx2.json',
    about: 'the same on a processor with AVX2 and without AVX-512',
    time: '31 minutes',
    ...benchAll('medium'),
  },
];
