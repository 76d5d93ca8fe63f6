/**
 * Closes the parts in turn, also those after one that cannot be closed.
 *
 * @throws the first error.
 */
export async function closeAll(...parts: readonly ({ close(): unknown } | undefined)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const part of parts) {
    try {
      await part?.close();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
