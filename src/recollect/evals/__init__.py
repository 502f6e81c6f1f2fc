"""Measuring retrieval: data sets, measures, sweeps, significance, reports. The engine is asked as any user asks it."""
