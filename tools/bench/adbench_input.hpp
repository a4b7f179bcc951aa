// The inputs of the four ADBench problems as plain data, and readers for the files of the suite.
//
// The files are those of microsoft/ADBench (Šrajer, Kukelova, Fitzgibbon, "A Benchmark of Selected
// Algorithmic Differentiation Tools on Some Problems in Computer Vision and Machine Learning", 2018). All
// numbers are separated by white space (colons in the hand model). A reader raises lantern::Error with the
// file and the line, in the shape `FILE:LINE: expected ..., got ...`, where a file cannot be read, holds
// something else than the number it should, or ends too early or too late.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <vector>

namespace lantern::bench {

/// A Gaussian mixture and the points to explain. K components in D dimensions, N points.
struct GmmInput {
  int dimensions = 0, components = 0, points = 0;
  std::vector<double> alphas;   ///< K
  std::vector<double> means;    ///< K x D
  std::vector<double> factors;  ///< K x D(D+1)/2: logarithms of a diagonal, then a lower triangle by columns
  std::vector<double> data;     ///< N x D
  double gamma = 0;             ///< of the Wishart prior
  int m = 0;                    ///< of the Wishart prior

  /// D(D+1)/2, the entries of one factor.
  int factor_size() const { return dimensions * (dimensions + 1) / 2; }
};

/// Cameras that look at points. Observation i joins camera joins[i][0] and point joins[i][1].
struct BaInput {
  int cameras = 0, points = 0, observations = 0;
  std::vector<double> camera;   ///< cameras x 11: rotation 3, centre 3, focal length, principal point 2,
                                ///< radial distortion 2
  std::vector<double> point;    ///< points x 3
  std::vector<double> weight;   ///< observations
  std::vector<double> feature;  ///< observations x 2
  std::vector<std::array<int, 2>> joins;  ///< observations
};

/// A character model of `layers` layers, each as wide as the alphabet, and a sequence to predict.
struct LstmInput {
  int layers = 0, characters = 0, width = 0;
  std::vector<double> main;      ///< 2 layers x 4 width: of layer i weights (row 2i) and biases (row 2i+1)
  std::vector<double> extra;     ///< 3 x width: input weights, output weights, output biases
  std::vector<double> state;     ///< 2 layers x width: of layer i hidden state (row 2i) and cell (row 2i+1)
  std::vector<double> sequence;  ///< characters x width
};

/// A skinned hand. Matrices are 4 x 4, row by row.
struct HandModel {
  std::vector<int> parent;                                    ///< of each bone, -1: none; parents come first
  std::vector<std::array<double, 16>> base_relative;          ///< of each bone
  std::vector<std::array<double, 16>> inverse_base_absolute;  ///< of each bone
  std::vector<std::array<double, 3>> vertices;
  std::vector<double> weights;  ///< vertices x bones: how much of a bone's movement a vertex follows
  std::vector<std::array<int, 3>> triangles;

  std::size_t bones() const { return parent.size(); }
};

/// A hand to fit to measured points. In the complicated form each point lies on a triangle, at a place of its
/// own (u, two numbers a point); in the simple form it is a vertex and `u` is empty.
struct HandInput {
  HandModel model;
  std::vector<int> correspondence;  ///< of each point: a vertex (simple) or a triangle (complicated)
  std::vector<std::array<double, 3>> measured;  ///< points
  std::vector<double> u;                        ///< points x 2, or empty
  std::vector<double> theta;                    ///< the pose, 26

  bool complicated() const { return !u.empty(); }
};

/// Reads `D K N`, alphas, means, factors, points, gamma, m.
GmmInput read_gmm(const std::filesystem::path& file);
/// Reads `n m p` and one camera, point, weight and feature, of which all are copies.
BaInput read_ba(const std::filesystem::path& file);
/// Reads `layers characters width`, main and extra parameters, initial state, sequence.
LstmInput read_lstm(const std::filesystem::path& file);
/// Reads an instance, and the model in the folder ../model beside it. The form, simple or complicated,
/// follows from how many numbers the file holds.
HandInput read_hand(const std::filesystem::path& file);
/// Reads bones.txt, vertices.txt and triangles.txt in a folder.
HandModel read_hand_model(const std::filesystem::path& folder);

/// Inputs of a size for which the suite has no file: repeatable, in the ranges of the suite's own.
GmmInput synthetic_gmm(int dimensions, int components, int points);
LstmInput synthetic_lstm(int layers, int characters, int width);

}  // namespace lantern::bench
