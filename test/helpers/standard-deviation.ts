/** Of all the numbers, summed in their order. */
export function standardDeviation(numbers: readonly number[]): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  const mean = sum / numbers.length;
  let squares = 0;
  for (const number of numbers) squares += (number - mean) ** 2;
  return Math.sqrt(squares / numbers.length);
}
